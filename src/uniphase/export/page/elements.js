// Elements of the page. Text is always set as text, so that no name can become markup.

import { drawRamp } from "./colors.js";

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function button(text, title, onclick) {
  return element("button", { type: "button", title, onclick }, text);
}

// A labelled choice; `choices` maps values to texts.
export function choice(label, choices, onchange) {
  const options = Object.entries(choices).map(([value, text]) => element("option", { value }, text));
  const select = element("select", { onchange: () => onchange(select.value) }, ...options);
  return { select, label: element("label", {}, element("span", {}, label), select) };
}

export function slider(label, range, oninput) {
  const input = element("input", { type: "range", "aria-label": label, ...range });
  input.addEventListener("input", () => oninput(Number(input.value)));
  return input;
}

// The colours of a range of values, for a field that is no image.
export function colorBar([low, high]) {
  const ramp = element("canvas", { class: "ramp", "aria-hidden": "true" });
  drawRamp(ramp);
  const ends = [low, high].map((x) => element("span", {}, number(x)));
  return element("div", { class: "bar", role: "group", "aria-label": "Colour bar" }, ends[0], ramp, ends[1]);
}

// Zooming a picture or waves by buttons: `zoom(factor)`, and others by their text.
export function zoomButtons(zoom, others) {
  const more = Object.entries(others).map(([text, [title, action]]) => button(text, title, action));
  const away = button("−", "Zoom out (−)", () => zoom(1 / 1.5));
  const closer = button("+", "Zoom in (+)", () => zoom(1.5));
  return element("div", { class: "buttons", role: "group", "aria-label": "Zoom" }, away, closer, ...more);
}

// A number in a few digits, with more of them where a small interval needs it.
export function number(x, interval = Math.abs(x)) {
  if (!Number.isFinite(x)) return "—";
  const digits = interval > 0 && x !== 0 ? Math.ceil(Math.log10(Math.abs(x) / interval)) + 4 : 4;
  return String(Number(x.toPrecision(Math.min(15, Math.max(4, digits))))).replaceAll("-", "−");
}
