"""The base of request bodies, whose keys are checked."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from t2t_revival.errors import did_you_mean, similar


class RequestBody(BaseModel):
    """An object of a request, which has no other keys than those of its class.

    Attributes:
        inner_keys: places of keys of its objects, by name, for those who have given one outside.
    """

    model_config = ConfigDict(extra="forbid")

    inner_keys: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, request: Any) -> Any:
        for name in request if isinstance(request, dict) else ():
            if name not in cls.model_fields:
                raise PydanticCustomError("unknown_key", "{fault}", {"fault": cls._unknown(name)})
        return request

    @classmethod
    def _unknown(cls, name: str) -> str:
        places = {**{own: own for own in cls.model_fields}, **cls.inner_keys}
        if near := [name] if name in places else similar(name, places):
            return f"unknown key {name!r}; did you mean {' or '.join(places[one] for one in near)}?"
        return did_you_mean(name, cls.model_fields, "key")
