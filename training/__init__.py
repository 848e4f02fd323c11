"""How the models are trained: the algorithms, rollouts, critic pretraining, the verl trainer, its launch."""
