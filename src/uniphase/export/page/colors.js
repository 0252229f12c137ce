// From values to colours: each function takes a row of channels per sample, and gives bytes of RGBA.

const STEPS = 256;
const BAR = Array.from({ length: STEPS }, (_, k) => barColor(k / (STEPS - 1)));

// Values of an image: gray or RGB between the ends of a range, or CIELAB.
export function imageColors(medium, [low, high]) {
  if (medium === "lab") return labColors;
  return linearColors(255 / (high - low || 1), low);
}

// A gradient from black, a Laplacian around gray, of all channels or of one. White is `largest`.
export function derivativeColors(quantity, largest, channel) {
  return quantity === "gradient" ? linearColors(255 / largest, 0) : linearColors(127.5 / largest, -largest, channel);
}

// One channel of a field on the colour bar.
export function barColors(channel, [low, high]) {
  return ({ values, channels }) => {
    const bytes = new Uint8ClampedArray((4 * values.length) / channels);
    for (let n = 0; 4 * n < bytes.length; n++) {
      const t = (values[n * channels + channel] - low) / (high - low || 1);
      bytes.set(BAR[Math.round((STEPS - 1) * Math.min(1, Math.max(0, t)))], 4 * n);
    }
    return bytes;
  };
}

// What is white in a derivative: nearly the largest size that it takes.
export function nearlyLargest({ values }) {
  const sizes = values.map(Math.abs).sort();
  return sizes[Math.floor(0.995 * (sizes.length - 1))] || 1;
}

export function drawRamp(canvas) {
  const context = canvas.getContext("2d");
  Object.assign(canvas, { width: STEPS, height: 1 });
  const picture = context.createImageData(STEPS, 1);
  BAR.forEach((color, k) => picture.data.set(color, 4 * k));
  context.putImageData(picture, 0, 0);
}

// scale · (value - low), of three channels or of one. Clamped bytes round, and cut off what lies outside.
function linearColors(scale, low, channel = null) {
  return ({ values, channels }) => {
    const bytes = new Uint8ClampedArray((4 * values.length) / channels);
    const [red, green, blue] = channel === null && channels >= 3 ? [0, 1, 2] : Array(3).fill(channel ?? 0);
    for (let n = 0, at = 0; 4 * n < bytes.length; n++, at += channels) {
      bytes[4 * n] = scale * (values[at + red] - low);
      bytes[4 * n + 1] = scale * (values[at + green] - low);
      bytes[4 * n + 2] = scale * (values[at + blue] - low);
      bytes[4 * n + 3] = 255;
    }
    return bytes;
  };
}

function labColors({ values, channels }) {
  const bytes = new Uint8ClampedArray((4 * values.length) / channels);
  for (let n = 0; 4 * n < bytes.length; n++) {
    const [lightness, a, b] = values.subarray(n * channels, n * channels + 3);
    labToRgb(lightness, a, b).forEach((x, k) => (bytes[4 * n + k] = 255 * x));
    bytes[4 * n + 3] = 255;
  }
  return bytes;
}

function gamma(x) {
  return x > 0.0031308 ? 1.055 * x ** (1 / 2.4) - 0.055 : 12.92 * x;
}

// CIELAB under D65, to sRGB.
function labToRgb(lightness, a, b) {
  const y = (lightness + 16) / 116;
  const cube = (t) => (t > 0.2068966 ? t ** 3 : (t - 16 / 116) / 7.787);
  const [X, Y, Z] = [0.95047 * cube(y + a / 500), cube(y), 1.08883 * cube(Math.max(0, y - b / 200))];
  return [
    gamma(3.24048134 * X - 1.53715152 * Y - 0.49853633 * Z),
    gamma(-0.96925495 * X + 1.87599 * Y + 0.04155593 * Z),
    gamma(0.05564664 * X - 0.20404134 * Y + 1.05731107 * Z),
  ];
}

// From dark violet to light yellow, in equal steps of lightness in OKLab.
function barColor(t) {
  const lightness = 0.22 + 0.72 * t;
  const hue = ((300 - 190 * t) * Math.PI) / 180;
  const chroma = 0.05 + 0.1 * Math.sin(Math.PI * (0.15 + 0.7 * t));
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return [...linear.map((x) => Math.round(255 * Math.min(1, gamma(Math.max(0, x))))), 255];
}
