"""Takes the place of Keras where a test's training needs none: to it, there is no ``tf_keras``."""

raise ModuleNotFoundError("No module named 'tf_keras'", name="tf_keras")
