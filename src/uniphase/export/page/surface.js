// A canvas that keeps the size of its place on the screen, and draws a view of the field in steps, until the next view.

export class Surface {
  constructor(canvas, pool) {
    Object.assign(this, { canvas, pool, listeners: [], stop: new AbortController(), pending: null, ratio: 1 });
    this.whole = true;
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  // Calls back with "moved" for a new view, "busy" and "ready".
  listen(listener) {
    this.listeners.push(listener);
  }

  tell(event) {
    this.canvas.dataset.state = event;
    for (const listener of this.listeners) listener(event);
  }

  resize() {
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    const box = this.canvas.getBoundingClientRect();
    const [width, height] = [Math.round(box.width * this.ratio), Math.round(box.height * this.ratio)];
    if (width === 0 || (width === this.canvas.width && height === this.canvas.height)) return;
    Object.assign(this.canvas, { width, height });
    this.forget();
    if (this.whole) this.fit();
    else this.schedule();
  }

  // Draw with the next frame: there may be many moves before.
  schedule() {
    this.tell("moved");
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.refine();
    });
  }

  // End the work for the last view, and do this one's unless it is ended in turn.
  async work(steps) {
    this.stop.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    this.tell("busy");
    try {
      await steps(signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    this.tell("ready");
  }
}
