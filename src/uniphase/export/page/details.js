// The drawer: how good the network is, how it was made, its layers and the moments of the signal.

import { element, number } from "./elements.js";

const METRICS = { psnr_db: "PSNR, dB", snr_db: "SNR, dB", ssim: "SSIM", mse: "mean squared error" };

export function fillDetails(drawer, { header, engine, size }) {
  const laws = drawer.querySelector("pre");
  drawer.append(
    ...(header.metrics ? [section("Quality", quality(header))] : []),
    section("Network", layerTable(header.blueprint), element("h3", {}, "As it was initialized"), laws),
    ...(header.moments ? [section("Moments of the signal", ...moments(header.moments))] : []),
    section("About", facts(header, engine, size)),
  );
}

function section(title, ...content) {
  return element("section", {}, element("h2", {}, title), ...content);
}

function table(heads, rows) {
  const cells = (tag, row) => element("tr", {}, ...row.map((text) => element(tag, {}, text)));
  const head = element("thead", {}, cells("th", heads));
  const body = element("tbody", {}, ...rows.map((row) => cells("td", row)));
  return element("div", { class: "scroll" }, element("table", {}, head, body));
}

function quality({ metrics, training }) {
  const columns = { "fitted samples": metrics, "test samples": training?.test_metrics };
  const known = Object.entries(columns).filter(([, numbers]) => numbers);
  const row = (key) => known.map(([, numbers]) => number(numbers[key] ?? NaN));
  const rows = Object.entries(METRICS).map(([key, name]) => [name, ...row(key)]);
  return table(["", ...known.map(([name]) => name)], rows);
}

function layerTable({ layers }) {
  const rows = layers.map(({ role, columns, rows, activation, omega }) => [
    role,
    `${columns} → ${activation === "sincos" ? 2 * rows : rows}`,
    activation,
    number(omega),
  ]);
  return table(["layer", "maps", "activation", "ω"], rows);
}

function moments({ mean, covariance, structure_tensor: tensor }) {
  const grid = (matrix) => table([], matrix.map((row) => row.map((x) => number(x))));
  return [
    ...[element("h3", {}, "Mean"), grid([mean])],
    ...[element("h3", {}, "Covariance"), grid(covariance)],
    ...[element("h3", {}, "Structure tensor"), grid(tensor)],
  ];
}

function facts({ domain, blueprint, bits, training, versions }, engine, size) {
  const box = domain.extents.map(([low, high]) => `[${number(low)}, ${number(high)}]`).join(" × ");
  const quantized = training?.quantized_psnr_db;
  const entries = {
    "Initialization": blueprint.scheme,
    "Domain": box,
    "Samples fitted as": domain.sampling === "averages" ? "averages over their cells" : "values at points",
    "Steps": training?.steps ? `${training.steps.toLocaleString("en")} in ${number(training.seconds)} s` : null,
    "Weights": `${size.toLocaleString("en")} bytes${bits ? `, hidden ones in ${bits} bits` : ""}`,
    "Quality with fewer bits": quantized ? `about ${quantized.toFixed(2)} dB PSNR` : null,
    "Computed by": engine,
    "Made with": versions?.uniphase ? `uniphase ${versions.uniphase}` : "uniphase",
  };
  const known = Object.entries(entries).filter(([, text]) => text);
  return element("dl", {}, ...known.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));
}
