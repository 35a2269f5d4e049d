// Draw on a canvas; each stroke is scaled to 8x8 pixels, whose bytes go to the model as they are.
import { load } from "./model/digits.mjs";

const SIZE = 8;
const INK = 30;
const pad = document.querySelector("#pad");
const said = document.querySelector("#said");
const list = document.querySelector("#chances");
const drawing = pad.getContext("2d", { willReadFrequently: true });
const rows = Array.from({ length: 10 }, (_, digit) => {
  const row = list.appendChild(document.createElement("li"));
  const bar = document.createElement("progress");
  row.append(String(digit), bar, document.createElement("span"));
  bar.setAttribute("aria-label", `chance of ${digit}`);
  return row;
});

Object.assign(drawing, { lineWidth: INK, lineCap: "round", lineJoin: "round", strokeStyle: "#124" });

/** The rectangle of the ink, or undefined if there is none. */
function inked() {
  const { data, width, height } = drawing.getImageData(0, 0, pad.width, pad.height);
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let at = 3, i = 0; at < data.length; at += 4, i++) {
    if (data[at] < 32) continue;
    const x = i % width, y = (i - x) / width;
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
  }
  return right < 0 ? undefined : { left, top, width: right - left + 1, height: bottom - top + 1 };
}

/** The ink as 8x8 pixels, white on black: as high as the image, and in its middle. */
function scaled({ left, top, width, height }) {
  const small = new OffscreenCanvas(SIZE, SIZE).getContext("2d", { willReadFrequently: true });
  const side = Math.max(width, height);
  const each = side / SIZE;
  const [x, y] = [left - (side - width) / 2, top - (side - height) / 2];
  const { data } = drawing.getImageData(Math.floor(x), Math.floor(y), Math.ceil(side), Math.ceil(side));
  const image = small.createImageData(SIZE, SIZE);
  const sums = new Float32Array(SIZE * SIZE);
  const stride = Math.ceil(side);
  for (let i = 0; i < stride * stride; i++) {
    const column = Math.min(SIZE - 1, Math.floor((i % stride) / each));
    const row = Math.min(SIZE - 1, Math.floor(Math.floor(i / stride) / each));
    sums[row * SIZE + column] += data[4 * i + 3];
  }
  sums.forEach((sum, i) => image.data.fill(Math.min(255, sum / each ** 2), 4 * i, 4 * i + 3));
  return image;
}

const begin = performance.now();
const model = await load();
said.value = `The model was ready in ${(performance.now() - begin).toFixed(0)} ms.`;

async function classify() {
  const ink = inked();
  if (!ink) return;
  const start = performance.now();
  const { chances } = await model.run({ image: scaled(ink) });
  const spent = performance.now() - start;
  const best = chances.indexOf(Math.max(...chances));
  rows.forEach((row, digit) => {
    row.classList.toggle("best", digit === best);
    row.querySelector("progress").value = chances[digit];
    row.querySelector("span").textContent = `${(100 * chances[digit]).toFixed(1)} %`;
  });
  said.value = `It is a ${best}; that took ${spent.toFixed(2)} ms.`;
}

function clear() {
  drawing.clearRect(0, 0, pad.width, pad.height);
  rows.forEach((row) => {
    row.className = "";
    row.querySelector("progress").value = 0;
    row.querySelector("span").textContent = "";
  });
}

let last;
pad.addEventListener("pointerdown", (event) => {
  pad.setPointerCapture(event.pointerId);
  last = undefined;
  stroke(event);
});
pad.addEventListener("pointermove", (event) => event.buttons && stroke(event));
pad.addEventListener("pointerup", classify);
document.querySelector("#clear").addEventListener("click", clear);

function stroke({ offsetX: x, offsetY: y }) {
  last ??= [x, y];
  drawing.beginPath();
  drawing.moveTo(...last);
  drawing.lineTo(x, y);
  drawing.stroke();
  last = [x, y];
}

clear();
document.body.dataset.ready = "yes";
