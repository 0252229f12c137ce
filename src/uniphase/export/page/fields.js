// What a file's header says about the field: its kind, its words, and where its samples lie.

// Cells along the longest side of a map of scattered points, which have no samples of their own to count.
const MAP_CELLS = 512;

export function kindOf({ domain, medium, rate }) {
  const axes = domain.extents.length;
  if (axes === 1) return medium === "sound" ? "sound" : "curve";
  if (axes === 2) return domain.shape && medium ? "image" : "map";
  return rate ? "video" : "volume";
}

export function describe(header, parameters) {
  const { domain, medium, rate, metrics } = header;
  const kind = kindOf(header);
  const size = domain.shape ? domain.shape.toReversed().join(" × ") : null;
  const unit = kind === "image" ? "pixels" : "samples";
  const words = [`${kind === "image" ? "An" : "A"} ${kind} of ${size ? `${size} ${unit}` : "scattered points"}`];
  if (medium && medium !== "sound") words.push(medium === "gray" ? "in gray" : `in ${medium.toUpperCase()}`);
  if (rate) words.push(kind === "sound" ? `at ${rate} Hz` : `at ${rate} frames per second`);
  words.push(`as a neural network of ${parameters.toLocaleString("en")} numbers`);
  const quality = metrics?.psnr_db ? `, ${metrics.psnr_db.toFixed(1)} dB PSNR` : "";
  return `${words.join(" ")}${quality}.`;
}

// An axis as cells: how many, their size, and where the first begins. Cells around corners reach beyond the extents.
export function axisCells({ shape, extents, align }, axis) {
  const [low, high] = extents[axis];
  const longest = Math.max(...extents.map(([a, b]) => b - a));
  const count = shape ? shape[axis] : Math.max(2, (MAP_CELLS * (high - low)) / longest);
  const spacing = (high - low) / (shape && align === "corners" ? count - 1 : count);
  return { count, spacing, start: shape && align === "corners" ? low - spacing / 2 : low };
}

// Axes of a picture: rows downwards and columns to the right. Cells are square, or in proportion if `physical`.
export function planeSpace(domain, rowAxis, columnAxis, { physical = false, upwards = false, at = [] } = {}) {
  const rows = axisCells(domain, rowAxis);
  const columns = axisCells(domain, columnAxis);
  const unit = Math.min(rows.spacing, columns.spacing);
  const [tall, wide] = physical ? [rows.spacing / unit, columns.spacing / unit] : [1, 1];
  const axes = domain.extents.map((_, k) => k);
  const sign = upwards ? -1 : 1;
  return {
    size: [rows.count * tall, columns.count * wide],
    origin: axes.map((k) => {
      if (k === rowAxis) return upwards ? rows.start + rows.count * rows.spacing : rows.start;
      return k === columnAxis ? columns.start : at[k];
    }),
    down: axes.map((k) => (k === rowAxis ? (sign * rows.spacing) / tall : 0)),
    across: axes.map((k) => (k === columnAxis ? columns.spacing / wide : 0)),
  };
}

// The map of scattered points: the first coordinate to the right, the second upwards.
export function mapSpace(domain) {
  if (domain.shape) return planeSpace(domain, 0, 1);
  const [width, height] = domain.extents.map(([low, high]) => high - low);
  const shapely = Math.max(width / height, height / width) <= 4;
  const square = { ...domain, shape: [MAP_CELLS, MAP_CELLS], align: "centers" };
  return planeSpace(shapely ? domain : square, 1, 0, { upwards: true });
}
