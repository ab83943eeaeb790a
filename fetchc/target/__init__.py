"""The machine that runs the program: registers, conventions, kernels; data of targets/."""
