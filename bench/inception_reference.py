"""The FID Inception network in PyTorch, written from its description: what crates/minvel/tests/real_data/inception.rs expects.

python bench/inception_reference.py WEIGHTS [IMAGES.npy OUT.npy]

Prints features of three images made by a formula; with IMAGES (bytes, [n, 3, h, w]) writes theirs as well.
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file


class Network:
    def __init__(self, path, dtype):
        self.w = {k: torch.from_numpy(v.astype(np.float32)).to(dtype) for k, v in load_file(path).items()}

    def conv(self, x, name, stride=1, pad=0):
        w, beta, mean, var = (self.w[f"{name}.{part}"] for part in ("weight", "beta", "mean", "var"))
        x = F.conv2d(x, w, stride=stride, padding=pad)
        return F.relu(F.batch_norm(x, mean, var, None, beta, False, 0.0, 1e-3))

    def block_a(self, x, name):
        c = lambda x, part, **k: self.conv(x, f"{name}.{part}", **k)
        five = c(c(x, "tower.conv"), "tower.conv_1", pad=2)
        three = c(c(c(x, "tower_1.conv"), "tower_1.conv_1", pad=1), "tower_1.conv_2", pad=1)
        pool = c(F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), "tower_2.conv")
        return torch.cat([c(x, "conv"), five, three, pool], 1)

    def block_b(self, x, name):
        c = lambda x, part, **k: self.conv(x, f"{name}.{part}", **k)
        three = c(c(c(x, "tower.conv"), "tower.conv_1", pad=1), "tower.conv_2", stride=2)
        return torch.cat([c(x, "conv", stride=2), three, F.max_pool2d(x, 3, 2)], 1)

    def block_c(self, x, name):
        c = lambda x, part, **k: self.conv(x, f"{name}.{part}", **k)
        seven = c(c(c(x, "tower.conv"), "tower.conv_1", pad=(0, 3)), "tower.conv_2", pad=(3, 0))
        twice = c(x, "tower_1.conv")
        for part, pad in (("1", (3, 0)), ("2", (0, 3)), ("3", (3, 0)), ("4", (0, 3))):
            twice = c(twice, f"tower_1.conv_{part}", pad=pad)
        pool = c(F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), "tower_2.conv")
        return torch.cat([c(x, "conv"), seven, twice, pool], 1)

    def block_d(self, x, name):
        c = lambda x, part, **k: self.conv(x, f"{name}.{part}", **k)
        three = c(c(x, "tower.conv"), "tower.conv_1", stride=2)
        seven = c(c(c(x, "tower_1.conv"), "tower_1.conv_1", pad=(0, 3)), "tower_1.conv_2", pad=(3, 0))
        seven = c(seven, "tower_1.conv_3", stride=2)
        return torch.cat([three, seven, F.max_pool2d(x, 3, 2)], 1)

    def block_e(self, x, name, pool):
        c = lambda x, part, **k: self.conv(x, f"{name}.{part}", **k)
        both = lambda x, part: [c(x, f"{part}_mixed_conv", pad=(0, 1)), c(x, f"{part}_mixed_conv_1", pad=(1, 0))]
        three = both(c(x, "tower_conv"), "tower")
        twice = both(c(c(x, "tower_1_conv"), "tower_1_conv_1", pad=1), "tower_1")
        return torch.cat([c(x, "conv"), *three, *twice, c(pool(x), "tower_2_conv")], 1)

    def __call__(self, x):
        """Features [n, 2048] of intensities [n, 3, h, w] in [0, 1]."""
        x = 2 * F.interpolate(x, size=(299, 299), mode="bilinear", align_corners=False) - 1
        x = self.conv(self.conv(self.conv(x, "conv", stride=2), "conv_1"), "conv_2", pad=1)
        x = self.conv(self.conv(F.max_pool2d(x, 3, 2), "conv_3"), "conv_4")
        x = F.max_pool2d(x, 3, 2)
        for name in ("mixed", "mixed_1", "mixed_2"):
            x = self.block_a(x, name)
        x = self.block_b(x, "mixed_3")
        for name in ("mixed_4", "mixed_5", "mixed_6", "mixed_7"):
            x = self.block_c(x, name)
        x = self.block_d(x, "mixed_8")
        x = self.block_e(x, "mixed_9", lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False))
        x = self.block_e(x, "mixed_10", lambda x: F.max_pool2d(x, 3, 1, 1))
        return x.mean((2, 3))


def pattern(k, height, width):
    """Bytes: waves of whole numbers, finer with k."""
    c, y, x = np.meshgrid(np.arange(3), np.arange(height), np.arange(width), indexing="ij")
    return ((3 * x + 5 * y * (c + 1) + (x * y * (k + 1)) // 4 + 64 * k + 40 * c) % 256).astype(np.uint8)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    network = Network(sys.argv[1], torch.float64)
    for k, (height, width) in enumerate([(32, 32), (64, 48), (299, 299)]):
        x = torch.from_numpy(pattern(k, height, width)[None]).double() / 255
        f = network(x)[0].numpy()
        print(f"{height}×{width}: sum {f.sum():.9g}, squares {np.square(f).sum():.9g}, every 256th:")
        print(", ".join(f"{v:.9g}" for v in f[::256]))
    if len(sys.argv) > 2:
        images = torch.from_numpy(np.load(sys.argv[2]))
        single = Network(sys.argv[1], torch.float32)
        parts = [single(part.float() / 255).numpy() for part in images.split(10)]
        np.save(sys.argv[3], np.concatenate(parts))
