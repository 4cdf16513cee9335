"""What all tests share: examples of hypothesis take as long as they take, since machines are busy at times."""

from hypothesis import settings

settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
