export function chartTabs() { return {}; }
