"""Tune a support vector machine with scikit-learn's search, its batches chosen by Covey.

pip install 'covey[sklearn]'
"""

from __future__ import annotations

from scipy.stats import loguniform
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from covey.integrations.sklearn import CoveySearchCV

X, y = load_diabetes(return_X_y=True)
model = make_pipeline(StandardScaler(), SVR())
space = {
    "svr__C": loguniform(1e-2, 1e4),
    "svr__gamma": loguniform(1e-5, 1e1),
    "svr__epsilon": loguniform(1e-2, 1e2),
}

search = CoveySearchCV(model, space, n_batches=5, batch_size=8, random_state=0)
search.fit(X, y)

results = search.cv_results_
for batch in range(search.n_batches_):
    scores = results["mean_test_score"][results["batch"] == batch]
    print(f"best of batch {batch}: {scores.max():.3f}")
print("best settings:", search.best_params_)
print(f"R2 before tuning: {cross_val_score(model, X, y).mean():.3f}")
print(f"R2 after tuning: {search.best_score_:.3f}")
