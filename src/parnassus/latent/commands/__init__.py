"""The room's part of `parnassus evaluate`."""
