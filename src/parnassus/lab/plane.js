// A plane under the pointer: points by class, ways through it, level lines behind; arrow keys move too.
// With `many`, points of one's own: a click adds one, a drag moves it, a click on one removes it.
export default {
  template: `<canvas class="plane" :tabindex="place || many ? 0 : -1" :role="place || many ? 'application' : 'img'" :aria-label="label"
    @pointermove="move" @pointerdown="hold" @pointerup="release" @pointercancel="release"
    @keydown="key"></canvas>`,
  props: { plane: Object, place: Array, many: Array, most: Number, palette: Array, label: String, ways: Object, threads: Array, arrows: Array, dots: Array, levels: String, side: { type: Number, default: 360 } },
  mounted() {
    this.ratio = window.devicePixelRatio || 1;
    this.$el.width = this.$el.height = this.side * this.ratio;
    this.$el.style.width = `${this.side}px`;
    this.$el.style.aspectRatio = "1";
    this.spots = this.many && this.many.map((spot) => Array.from(spot));
    this.at = this.many ? [this.plane.across, this.plane.up].map(([low, high]) => (low + high) / 2) : this.place && Array.from(this.place);
    this.held = false;
    this.watcher = new MutationObserver(() => this.paint());
    this.watcher.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.show();
  },
  beforeUnmount() {
    this.watcher.disconnect();
  },
  watch: {
    ways() { this.paint(); },
    threads() { this.paint(); },
    levels() { this.show(); },
  },
  methods: {
    show() {
      if (!this.levels) { this.behind = null; this.paint(); return; }
      const image = new Image();
      image.onload = () => { this.behind = image; this.paint(); };
      image.src = this.levels;
    },
    across(x) { const [low, high] = this.plane.across; return ((x - low) / (high - low)) * this.$el.width; },
    down(y) { const [low, high] = this.plane.up; return (1 - (y - low) / (high - low)) * this.$el.height; },
    under(event) {
      const box = this.$el.getBoundingClientRect();
      const share = [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
      return [this.plane.across, this.plane.up].map(([low, high], axis) => low + Math.min(1, Math.max(0, share[axis])) * (high - low));
    },
    move(event) {
      if (!this.at) return;
      if (this.spots) return this.held && this.drag(this.under(event));
      if (this.held && !event.buttons) return;
      this.go(this.under(event));
    },
    hold(event) {
      if (!this.at) return;
      this.$el.focus({ preventScroll: true });
      if (this.spots) {
        this.$el.setPointerCapture(event.pointerId);
        return this.grab(this.under(event));
      }
      this.held = !this.held;
      this.go(this.under(event));
    },
    near(a, b, reach) {
      return Math.hypot(this.across(a[0]) - this.across(b[0]), this.down(a[1]) - this.down(b[1])) < reach * this.ratio;
    },
    grab(place) {
      this.keyed = place === this.at; // the cross is for keys
      const found = this.spots.findIndex((spot) => this.near(spot, place, 10));
      this.taken = found < 0 ? null : place; // a point that was there goes, unless it is dragged away
      this.held = found >= 0 || this.spots.length < this.most;
      if (found >= 0) this.spots.push(...this.spots.splice(found, 1));
      else if (this.held) this.spots.push(place);
      this.tell();
    },
    drag(place) {
      if (this.taken && this.near(this.taken, place, 4)) return;
      this.taken = null;
      this.spots[this.spots.length - 1] = place;
      this.tell();
    },
    release() {
      if (!this.spots || !this.held) return;
      this.held = false;
      if (this.taken) this.spots.pop();
      this.tell();
    },
    load(places) {
      this.spots = places.map((spot) => Array.from(spot));
      this.paint();
    },
    key(event) {
      if (this.spots && (event.key === " " || event.key === "Enter")) { this.grab(this.at); this.release(); event.preventDefault(); }
      if (this.spots && (event.key === "Delete" || event.key === "Backspace")) { this.load([]); this.tell(); event.preventDefault(); }
      const step = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
      if (!step || !this.at) return;
      const share = event.shiftKey ? 0.1 : 0.02;
      this.go([this.plane.across, this.plane.up].map(([low, high], axis) => Math.min(high, Math.max(low, this.at[axis] + step[axis] * share * (high - low)))));
      event.preventDefault();
    },
    go(place) {
      this.at = place;
      this.keyed = true;
      if (this.spots) this.paint();
      else this.tell();
    },
    tell() {
      this.paint();
      if (this.waiting) return;
      this.waiting = setTimeout(() => {
        this.waiting = null;
        const round = (place) => place.map((value) => Math.round(value * 1e5) / 1e5);
        this.$emit("moved", this.spots ? this.spots.map(round) : round(this.at));
      }, 30);
    },
    paint() {
      const pen = this.$el.getContext("2d");
      const sheet = getComputedStyle(document.body);
      const ink = sheet.getPropertyValue("--ink").trim() || "#888";
      const faint = sheet.getPropertyValue("--faint").trim() || "#888";
      const unit = this.ratio;
      pen.clearRect(0, 0, this.$el.width, this.$el.height);
      if (this.behind) pen.drawImage(this.behind, 0, 0, this.$el.width, this.$el.height);
      this.axes(pen, faint, unit);
      const names = this.plane.classes || [];
      const short = names.length > 0 && names.every((name) => name.length <= 2);
      pen.font = `${10 * unit}px system-ui, sans-serif`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.globalAlpha = 0.75;
      for (const [x, y, kind] of this.plane.points) {
        pen.fillStyle = this.palette[kind % this.palette.length];
        if (short) pen.fillText(names[kind], this.across(x), this.down(y));
        else { pen.beginPath(); pen.arc(this.across(x), this.down(y), 2.2 * unit, 0, 7); pen.fill(); }
      }
      pen.globalAlpha = 1;
      (this.threads || []).forEach((places) => this.line(pen, places, ink, 0.7 * unit));
      (this.arrows || []).forEach((ends) => this.arrow(pen, ends, ink, unit));
      Object.values(this.ways || {}).forEach((places, index) => this.way(pen, places, this.palette[index % this.palette.length], unit));
      pen.fillStyle = this.palette[1];
      for (const [x, y] of this.spots || this.dots || []) { pen.beginPath(); pen.arc(this.across(x), this.down(y), (this.spots ? 5 : 2) * unit, 0, 7); pen.fill(); }
      if (!this.at || (this.spots && !this.keyed)) return;
      const [x, y] = [this.across(this.at[0]), this.down(this.at[1])];
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
      pen.moveTo(this.across(0), 0); pen.lineTo(this.across(0), this.$el.height);
      pen.moveTo(0, this.down(0)); pen.lineTo(this.$el.width, this.down(0));
      pen.stroke();
      const round = (value) => Number(value.toPrecision(2)).toString();
      pen.textBaseline = "bottom";
      pen.textAlign = "left";
      pen.fillText(`${this.plane.names[0]} ${round(this.plane.across[0])}`, 4 * unit, this.$el.height - 3 * unit);
      pen.textAlign = "right";
      pen.fillText(round(this.plane.across[1]), this.$el.width - 4 * unit, this.$el.height - 3 * unit);
      pen.textBaseline = "top";
      pen.textAlign = "left";
      pen.fillText(`${this.plane.names[1]} ${round(this.plane.up[1])}`, 4 * unit, 4 * unit);
    },
    line(pen, places, colour, width) {
      const limit = 20 * this.$el.width;
      const inside = places.filter(([x, y]) => Math.abs(this.across(x)) < limit && Math.abs(this.down(y)) < limit);
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = width;
      pen.beginPath();
      inside.forEach(([x, y], index) => (index ? pen.lineTo : pen.moveTo).call(pen, this.across(x), this.down(y)));
      pen.stroke();
      return inside;
    },
    arrow(pen, [start, end], colour, unit) {
      pen.globalAlpha = 0.6;
      this.line(pen, [start, end], colour, 0.9 * unit);
      const [x, y] = [this.across(end[0]), this.down(end[1])];
      const turn = Math.atan2(y - this.down(start[1]), x - this.across(start[0]));
      pen.beginPath();
      pen.moveTo(x, y);
      for (const side of [2.6, -2.6]) pen.lineTo(x + 4 * unit * Math.cos(turn + side), y + 4 * unit * Math.sin(turn + side));
      pen.fill();
      pen.globalAlpha = 1;
    },
    way(pen, places, colour, unit) {
      const inside = this.line(pen, places, colour, 1.6 * unit);
      if (inside.length > 150) return; // a curve, not steps
      for (const [x, y] of inside.slice(0, 60)) { pen.beginPath(); pen.arc(this.across(x), this.down(y), 2.4 * unit, 0, 7); pen.fill(); }
    },
  },
};
