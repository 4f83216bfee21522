"""What baselines share: forecast origins, lag grids, state columns, least-squares fits, tracks."""
