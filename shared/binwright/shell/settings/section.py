"""What all sections share: a table of the settings file, and the kinds of its numbers."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Positive
Bytes = Annotated[int, Field(gt=0)]


class Section(BaseModel):
    """A table of the settings file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
