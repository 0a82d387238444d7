"""A trained model as one SavedModel: strings in, strings out."""
