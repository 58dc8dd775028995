"""Images as people name them in a terminal, and images of an answer as files."""

from pathlib import Path

from chatbot.errors import InputError
from chatbot.images.image import names_shown
from graphs.synchronous import SyncChatbot

ADDRESSES = ("https://", "http://", "data:")


def picture(text: str) -> str | Path:
    """Return an image that somebody named: an address as it is, anything else as a file."""
    return text if text.lower().startswith(ADDRESSES) else Path(text).expanduser()


def save_pictures(
    bot: SyncChatbot, answer: str, folder: Path, *, user_id: str | None = None
) -> list[Path]:
    """Write the images that an answer shows into the folder and return their files.

    Raises:
        InputError: The answer shows none, or the folder cannot be written.
        HistoryError: One of them could not be read.
    """
    found = [bot.image(name, user_id=user_id) for name in dict.fromkeys(names_shown(answer))]
    images = [image for image in found if image is not None]
    if not images:
        message = "The last answer shows no image that is kept."
        raise InputError(message)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"{image.name[:12]}{Path(image.name).suffix}" for image in images]
        for file, image in zip(files, images, strict=True):
            file.write_bytes(image.data)
    except OSError as error:
        message = f"The folder {folder} cannot be written: {error.strerror}."
        raise InputError(message) from None
    return files
