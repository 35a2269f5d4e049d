/** Serve one model: messages { id, load } and { id, run } are answered by { id, result } or { id, error }. */
let model;
const answer = async ({ load: loaded, run }) => {
  if (loaded) {
    model = await load(...loaded);
    return true;
  }
  return Object.fromEntries(Object.entries(await model.run(...run)).map(
    ([name, data]) => [name, { data, shape: data.shape }]));
};
self.onmessage = async ({ data: { id, ...asked } }) => {
  try {
    const result = await answer(asked);
    const moved = asked.run ? Object.values(result).map(({ data }) => data.buffer) : [];
    self.postMessage({ id, result }, moved);
  } catch (error) {
    const { message, what, why, fix } = error;
    self.postMessage({ id, error: { message, what, why, fix } });
  }
};
