// A plane with points by class, paths, and contour lines in the background. `point` follows the pointer and the arrow keys.
// With `points`: a click adds a point or removes the one under the pointer, a drag moves it.
export default {
  template: `<canvas class="plane" :tabindex="point || points ? 0 : -1" :role="point || points ? 'application' : 'img'" :aria-label="label"
    @pointermove="move" @pointerdown="press" @pointerup="release" @pointercancel="release"
    @keydown="key"></canvas>`,
  props: { plane: Object, point: Array, points: Array, maxPoints: Number, palette: Array, label: String, paths: Object, thinLines: Array, arrows: Array, dots: Array, levels: String, side: { type: Number, default: 360 } },
  mounted() {
    this.ratio = window.devicePixelRatio || 1;
    this.$el.width = this.$el.height = this.side * this.ratio;
    this.$el.style.width = `${this.side}px`;
    this.$el.style.aspectRatio = "1";
    this.added = this.points && this.points.map((point) => Array.from(point));
    this.cursor = this.points ? this.ranges().map(([low, high]) => (low + high) / 2) : this.point && Array.from(this.point);
    this.held = false;
    this.watcher = new MutationObserver(() => this.paint());
    this.watcher.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.loadLevels();
  },
  beforeUnmount() {
    this.watcher.disconnect();
  },
  watch: {
    paths() { this.paint(); },
    thinLines() { this.paint(); },
    levels() { this.loadLevels(); },
  },
  methods: {
    ranges() { return [this.plane.x_range, this.plane.y_range]; },
    loadLevels() {
      if (!this.levels) { this.background = null; this.paint(); return; }
      const image = new Image();
      image.onload = () => { this.background = image; this.paint(); };
      image.src = this.levels;
    },
    column(x) { const [low, high] = this.plane.x_range; return ((x - low) / (high - low)) * this.$el.width; },
    row(y) { const [low, high] = this.plane.y_range; return (1 - (y - low) / (high - low)) * this.$el.height; },
    under(event) {
      const box = this.$el.getBoundingClientRect();
      const fraction = [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
      return this.ranges().map(([low, high], axis) => low + Math.min(1, Math.max(0, fraction[axis])) * (high - low));
    },
    move(event) {
      if (!this.cursor) return;
      if (this.added) return this.held && this.drag(this.under(event));
      if (this.held && !event.buttons) return;
      this.moveTo(this.under(event));
    },
    press(event) {
      if (!this.cursor) return;
      this.$el.focus({ preventScroll: true });
      if (this.added) {
        this.$el.setPointerCapture(event.pointerId);
        return this.grab(this.under(event));
      }
      this.held = !this.held;
      this.moveTo(this.under(event));
    },
    near(a, b, reach) {
      return Math.hypot(this.column(a[0]) - this.column(b[0]), this.row(a[1]) - this.row(b[1])) < reach * this.ratio;
    },
    grab(point) {
      this.byKeyboard = point === this.cursor; // the cross is shown while keys are used
      const found = this.added.findIndex((other) => this.near(other, point, 10));
      this.pressed = found < 0 ? null : point; // an existing point is removed, unless it is dragged
      this.held = found >= 0 || this.added.length < this.maxPoints;
      if (found >= 0) this.added.push(...this.added.splice(found, 1));
      else if (this.held) this.added.push(point);
      this.send();
    },
    drag(point) {
      if (this.pressed && this.near(this.pressed, point, 4)) return;
      this.pressed = null;
      this.added[this.added.length - 1] = point;
      this.send();
    },
    release() {
      if (!this.added || !this.held) return;
      this.held = false;
      if (this.pressed) this.added.pop();
      this.send();
    },
    load(points) {
      this.added = points.map((point) => Array.from(point));
      this.paint();
    },
    key(event) {
      if (this.added && (event.key === " " || event.key === "Enter")) { this.grab(this.cursor); this.release(); event.preventDefault(); }
      if (this.added && (event.key === "Delete" || event.key === "Backspace")) { this.load([]); this.send(); event.preventDefault(); }
      const step = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
      if (!step || !this.cursor) return;
      const fraction = event.shiftKey ? 0.1 : 0.02;
      this.moveTo(this.ranges().map(([low, high], axis) => Math.min(high, Math.max(low, this.cursor[axis] + step[axis] * fraction * (high - low)))));
      event.preventDefault();
    },
    moveTo(point) {
      this.cursor = point;
      this.byKeyboard = true;
      if (this.added) this.paint();
      else this.send();
    },
    send() {
      this.paint();
      if (this.timeout) return;
      this.timeout = setTimeout(() => {
        this.timeout = null;
        const round = (point) => point.map((value) => Math.round(value * 1e5) / 1e5);
        this.$emit("move", this.added ? this.added.map(round) : round(this.cursor));
      }, 30);
    },
    paint() {
      const pen = this.$el.getContext("2d");
      const style = getComputedStyle(document.body);
      const ink = style.getPropertyValue("--ink").trim() || "#888";
      const faint = style.getPropertyValue("--faint").trim() || "#888";
      const unit = this.ratio;
      pen.clearRect(0, 0, this.$el.width, this.$el.height);
      if (this.background) pen.drawImage(this.background, 0, 0, this.$el.width, this.$el.height);
      this.axes(pen, faint, unit);
      const names = this.plane.classes || [];
      const short = names.length > 0 && names.every((name) => name.length <= 2);
      pen.font = `${10 * unit}px system-ui, sans-serif`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.globalAlpha = 0.75;
      for (const [x, y, label] of this.plane.points) {
        pen.fillStyle = this.palette[label % this.palette.length];
        if (short) pen.fillText(names[label], this.column(x), this.row(y));
        else { pen.beginPath(); pen.arc(this.column(x), this.row(y), 2.2 * unit, 0, 7); pen.fill(); }
      }
      pen.globalAlpha = 1;
      (this.thinLines || []).forEach((points) => this.line(pen, points, ink, 0.7 * unit));
      (this.arrows || []).forEach((ends) => this.arrow(pen, ends, ink, unit));
      Object.values(this.paths || {}).forEach((points, index) => this.path(pen, points, this.palette[index % this.palette.length], unit));
      pen.fillStyle = this.palette[1];
      for (const [x, y] of this.added || this.dots || []) { pen.beginPath(); pen.arc(this.column(x), this.row(y), (this.added ? 5 : 2) * unit, 0, 7); pen.fill(); }
      if (!this.cursor || (this.added && !this.byKeyboard)) return;
      const [x, y] = [this.column(this.cursor[0]), this.row(this.cursor[1])];
      pen.strokeStyle = ink;
      pen.lineWidth = 2 * unit;
      pen.beginPath();
      pen.arc(x, y, 7 * unit, 0, 7);
      pen.moveTo(x - 12 * unit, y); pen.lineTo(x + 12 * unit, y);
      pen.moveTo(x, y - 12 * unit); pen.lineTo(x, y + 12 * unit);
      pen.stroke();
    },
    axes(pen, faint, unit) {
      pen.strokeStyle = pen.fillStyle = faint;
      pen.lineWidth = 0.6 * unit;
      pen.font = `${10 * unit}px system-ui, sans-serif`;
      pen.beginPath();
      pen.moveTo(this.column(0), 0); pen.lineTo(this.column(0), this.$el.height);
      pen.moveTo(0, this.row(0)); pen.lineTo(this.$el.width, this.row(0));
      pen.stroke();
      const round = (value) => Number(value.toPrecision(2)).toString();
      pen.textBaseline = "bottom";
      pen.textAlign = "left";
      pen.fillText(`${this.plane.x_label} ${round(this.plane.x_range[0])}`, 4 * unit, this.$el.height - 3 * unit);
      pen.textAlign = "right";
      pen.fillText(round(this.plane.x_range[1]), this.$el.width - 4 * unit, this.$el.height - 3 * unit);
      pen.textBaseline = "top";
      pen.textAlign = "left";
      pen.fillText(`${this.plane.y_label} ${round(this.plane.y_range[1])}`, 4 * unit, 4 * unit);
    },
    line(pen, points, colour, width) {
      const limit = 20 * this.$el.width;
      const inside = points.filter(([x, y]) => Math.abs(this.column(x)) < limit && Math.abs(this.row(y)) < limit);
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = width;
      pen.beginPath();
      inside.forEach(([x, y], index) => (index ? pen.lineTo : pen.moveTo).call(pen, this.column(x), this.row(y)));
      pen.stroke();
      return inside;
    },
    arrow(pen, [start, end], colour, unit) {
      pen.globalAlpha = 0.6;
      this.line(pen, [start, end], colour, 0.9 * unit);
      const [x, y] = [this.column(end[0]), this.row(end[1])];
      const turn = Math.atan2(y - this.row(start[1]), x - this.column(start[0]));
      pen.beginPath();
      pen.moveTo(x, y);
      for (const side of [2.6, -2.6]) pen.lineTo(x + 4 * unit * Math.cos(turn + side), y + 4 * unit * Math.sin(turn + side));
      pen.fill();
      pen.globalAlpha = 1;
    },
    path(pen, points, colour, unit) {
      const inside = this.line(pen, points, colour, 1.6 * unit);
      if (inside.length > 150) return; // a curve without single steps
      for (const [x, y] of inside.slice(0, 60)) { pen.beginPath(); pen.arc(this.column(x), this.row(y), 2.4 * unit, 0, 7); pen.fill(); }
    },
  },
};
