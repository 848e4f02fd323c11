"""What the agent loop stores of a batch: a mask as long as each response, each score on its last token."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.generation.scoring import Scored
from training.ppo.agent_loop import _trajectory_fields
from training.ppo.rollout_server import GeneratedBatch

EOS = 2
RESPONSES = st.lists(st.integers(3, 30), max_size=6).flatmap(
    # ended by itself, perhaps at once, or cut
    lambda body: st.sampled_from([[*body, EOS], body or [EOS]])
)
SAMPLES = st.lists(
    st.tuples(st.lists(st.integers(3, 30), min_size=1, max_size=5), RESPONSES, st.sampled_from([1.0, -1.0])),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(samples=SAMPLES)
def test_every_row_has_its_own_length_and_its_score_on_its_last_token(samples: list) -> None:
    prompts, responses, scores = zip(*samples, strict=True)
    lengths = [len(response) for response in responses]
    tokens = np.concatenate(responses).astype(np.int32)
    drawn = GeneratedBatch(
        tokens=tokens,
        log_probs=-np.arange(len(tokens), dtype=np.float32),
        lengths=lengths,
        stopped=[response[-1] == EOS for response in responses],
        policy_version=1,
    )
    scored = [Scored("right" if score > 0 else "wrong", None, score) for score in scores]
    fields = _trajectory_fields(list(prompts), drawn, torch.tensor(lengths), scored)
    starts = np.cumsum([0, *lengths])
    for row, (prompt, response, score) in enumerate(samples):
        assert fields["responses"][row].tolist() == list(response)
        assert fields["input_ids"][row].tolist() == [*prompt, *response]
        assert fields["position_ids"][row].tolist() == list(range(len(prompt) + len(response)))
        assert fields["response_mask"][row].tolist() == [1] * len(response)
        assert fields["rm_scores"][row].tolist() == [0.0] * (len(response) - 1) + [score]
        assert fields["rollout_log_probs"][row].tolist() == [
            -float(i) for i in range(starts[row], starts[row + 1])
        ]
