"""The file of API keys of t2t-server."""

from types import SimpleNamespace

from t2t_revival.cli.server import _api_keys


def keys_of(path, content):
    path.write_bytes(content)
    return _api_keys(SimpleNamespace(api_key_file=str(path)))


def test_a_file_that_an_editor_of_windows_has_saved(tmp_path):
    for content in (
        b"one\ntwo-\xc3\xbc\n",
        b"\xef\xbb\xbfone\r\ntwo-\xc3\xbc\r\n",
        b"\xef\xbb\xbf one \r\n\r\ntwo-\xc3\xbc",
    ):
        assert keys_of(tmp_path / "keys", content) == ["one", "two-ü"]
