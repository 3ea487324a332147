"""Speed and regret, measured: never part of the package."""
