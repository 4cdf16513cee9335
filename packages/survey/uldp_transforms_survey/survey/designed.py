"""Answers of a table as counts by design, with their covariance if the sample is not simple."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms_survey.answers.samples import Sample
from uldp_transforms_survey.answers.shares import DesignedAnswers
from uldp_transforms_survey.survey.answer_table import Answers


def designed(answers: Answers, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, DesignedAnswers]:
    """Count the answers of some rows by question and design.

    Args:
        answers: of a table with N rows.
        rows: (N,) bool.

    Returns:
        (A,) numbers of the questions, (A,) of the designs, and their answers.

    Raises:
        SpecError: if a stratum has only one cluster.
    """
    both = np.stack([answers.question[rows], answers.design[rows]])
    (question, design), cell = np.unique(both, axis=1, return_inverse=True)
    cell = cell.reshape(-1)
    answer, sample = answers.answer[rows], answers.sample(rows)
    shares = answers.people[rows].astype(np.float64) if sample is None else sample.shares
    no, yes = np.array([answers.designs[number].ones for number in design.tolist()], dtype=np.float64).T
    counted = DesignedAnswers(
        no=no, yes=yes, ones=np.bincount(cell, weights=shares * answer), people=np.bincount(cell, weights=shares)
    )
    return question, design, counted if sample is None else _drawn(counted, sample, cell, answer)


def _drawn(counted: DesignedAnswers, sample: Sample, cell: np.ndarray, answer: np.ndarray) -> DesignedAnswers:
    """Add the covariance of the fractions of answers 1."""
    of_cell = cell[:, np.newaxis] == np.arange(len(counted.people))
    scores = of_cell * (answer[:, np.newaxis] - counted.ones / counted.people) / counted.people
    return dataclasses.replace(
        counted,
        covariance=sample.covariance(scores),
        effects=np.array([sample.effect(rows) for rows in of_cell.T]),
        degrees=sample.degrees,
    )
