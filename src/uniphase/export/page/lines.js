// Sounds and curves: the waves, and for a sound a player.

import { button, choice, element, number, zoomButtons } from "./elements.js";
import { axisCells } from "./fields.js";
import { listen } from "./gestures.js";
import { Player } from "./player.js";
import { Waves } from "./waves.js";

const SPEEDS = { 0.25: "¼ speed", 0.5: "½ speed", 1: "normal speed", 2: "double speed" };

export function showLine({ header, pool, stage, toolbar, status }) {
  const canvas = stage.querySelector("canvas");
  const { domain, rate, value_range: range } = header;
  const cells = axisCells(domain, 0);
  const channels = header.blueprint.layers.at(-1).rows;
  const label = rate ? (at) => at / rate : (at) => cells.start + at * cells.spacing;
  const waves = new Waves(canvas, pool, cells, channels, range, label);
  const zoom = (factor) => waves.zoom(factor, canvas.width / 2);
  const fit = () => waves.fit();
  toolbar.append(zoomButtons(zoom, { Fit: ["Show all of it (0)", fit] }));
  const keys = { 0: fit, Home: fit };
  if (rate) keys[" "] = addPlayer(waves, header, cells, stage, toolbar, status);
  listen(canvas, { pan: (dx) => waves.pan(dx), zoom: (factor, x) => waves.zoom(factor, x), keys });
  waves.listen((event) => {
    const [low, high] = [0, canvas.width].map((px) => waves.view.at + (px - canvas.width / 2) / waves.view.scale);
    canvas.dataset.region = JSON.stringify([[low, high].map((at) => cells.start + at * cells.spacing)]);
    const span = label(high) - label(low);
    status.view.textContent = `${number(label(low), span)} to ${number(label(high), span)}${rate ? " s" : ""}`;
    status.busy(event !== "ready");
  });
  waves.resize();
}

function addPlayer(waves, header, cells, stage, toolbar, status) {
  const head = element("div", { class: "line", hidden: true });
  stage.append(head);
  const play = button("Play", "Play or stop (space)", () => player.toggle());
  const player = new Player(waves, header.rate, cells.count, header.blueprint.layers.at(-1).rows, {
    state: (state, part) => {
      play.textContent = state === "stopped" ? "Play" : "Stop";
      play.dataset.state = state;
      status.place.textContent = state === "preparing" ? `preparing the sound, ${Math.round(100 * part)} %` : "";
      head.hidden = state !== "playing";
    },
    head: (at) => {
      const { canvas, view } = waves;
      head.style.left = `${(100 * ((at - view.at) * view.scale + canvas.width / 2)) / canvas.width}%`;
    },
  });
  const speeds = choice("At", SPEEDS, (speed) => player.setSpeed(Number(speed)));
  speeds.select.value = "1";
  toolbar.append(play, speeds.label);
  return () => player.toggle();
}
