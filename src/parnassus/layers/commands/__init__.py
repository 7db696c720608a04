"""The room's part of `parnassus predict` and `parnassus evaluate`."""
