// Runs inside a copy of a report: every box that is where it should not be, in words.
const box = element => element.getBoundingClientRect();
const words = element => `${element.tagName.toLowerCase()} "${(element.textContent || "").trim().slice(0, 40)}"`;
const shown = element => box(element).width > 0 && box(element).height > 0 && getComputedStyle(element).visibility !== "hidden";
const meet = (a, b, slack) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;
const all = (selector, within = document) => [...within.querySelectorAll(selector)].filter(shown);

function inked(element) { // where the words of an element really are
  const range = document.createRange();
  range.selectNodeContents(element);
  return range.getBoundingClientRect();
}

function layout() {
  const wrong = [];
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) wrong.push(`the page scrolls sideways: ${document.documentElement.scrollWidth} > ${wide}`);
  const blocks = [...document.querySelector(".mixope").children];
  blocks.forEach((a, i) => blocks.slice(i + 1).forEach(b => { if (meet(box(a), box(b), 1)) wrong.push(`${words(a)} over ${words(b)}`); }));
  for (const element of all(".mixope *")) {
    if (element.closest(".scroll") && !element.matches(".scroll")) continue;
    if (element.closest("svg") && !element.matches("svg")) continue;
    if (box(element).right > wide + 0.5 || box(element).left < -0.5) wrong.push(`${words(element)} leaves the page`);
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0 && !element.matches(".scroll, span, a, code, svg"))
      wrong.push(`${words(element)} is wider than its box: ${element.scrollWidth} > ${element.clientWidth}`);
  }
  for (const section of all(".mixope header, .mixope section")) {
    const parts = [...section.children].filter(shown);
    parts.forEach((a, i) => parts.slice(i + 1).forEach(b => { if (meet(box(a), box(b), 1)) wrong.push(`${words(a)} over ${words(b)}`); }));
  }
  return wrong;
}

function tables() {
  const wrong = [];
  for (const row of all("tr")) {
    const cells = all("th, td", row).filter(cell => cell.textContent.trim());
    cells.forEach((a, i) => cells.slice(i + 1).forEach(b => { if (meet(inked(a), inked(b), 0.5)) wrong.push(`${words(a)} over ${words(b)}`); }));
    for (const cell of cells)
      if (inked(cell).right > box(cell).right + 1 || inked(cell).left < box(cell).left - 1) wrong.push(`${words(cell)} leaves its cell`);
  }
  for (const caption of all("caption"))
    if (box(caption).right > box(caption.closest(".scroll")).right + 1) wrong.push(`${words(caption)} is cut`);
  return wrong;
}

function drawings() {
  const wrong = [];
  for (const drawing of all("svg")) {
    const texts = all("text", drawing);
    const frame = box(drawing);
    const scale = frame.width / drawing.viewBox.baseVal.width;
    texts.forEach((a, i) => texts.slice(i + 1).forEach(b => { if (meet(box(a), box(b), 1.5)) wrong.push(`${words(a)} over ${words(b)}`); }));
    for (const text of texts) {
      const place = box(text);
      if (place.left < frame.left - 1 || place.right > frame.right + 1 || place.top < frame.top - 1 || place.bottom > frame.bottom + 1)
        wrong.push(`${words(text)} leaves the drawing`);
      const size = parseFloat(getComputedStyle(text).fontSize) * scale;
      if (size < 11) wrong.push(`${words(text)} is ${size.toFixed(1)} px high`);
    }
  }
  return wrong;
}

function light(colour) {
  const [r, g, b] = colour.match(/[\d.]+/g).map(Number).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);

function behind(element) {
  for (let e = element; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (!/^rgba.*, 0\)$|transparent/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
}

function contrasts() {
  const wrong = [];
  for (const element of all("p, td, th, dt, dd, li, a, h1, h2, h3, caption, figcaption, code, .sign, .verdict, svg text")) {
    const style = getComputedStyle(element);
    const found = contrast(element.matches("text") ? style.fill : style.color, behind(element));
    if (found < 4.5) wrong.push(`${words(element)} has a contrast of ${found.toFixed(2)}`);
  }
  return wrong;
}

addEventListener("load", () => setTimeout(() => parent.postMessage({
  name: NAME,
  layout: layout(), tables: tables(), drawings: drawings(), contrasts: contrasts(),
  fetched: performance.getEntriesByType("resource").map(entry => entry.name),
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
  paper: behind(document.querySelector(".mixope")),
  counted: { texts: all("svg text").length, cells: all("td").length, drawings: all("svg").length, sections: all("section").length },
  wide: innerWidth,
}, "*"), 50));
