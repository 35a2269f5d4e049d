"""The file format of Core ML: programs in its language MIL as data, and the bytes of packages.

``program.py`` holds the dataclasses, ``schema.py`` the fields of the messages, ``wire.py`` the
protobuf wire format, ``weights.py`` the weight file. ``write.py`` turns a Package into files.
Nothing in this room knows what an operator computes.
"""
