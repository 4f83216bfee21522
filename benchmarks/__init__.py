"""Speed, as ratios inside one run: absolute times depend on the machine and on its neighbours."""
