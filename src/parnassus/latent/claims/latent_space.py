"""Claims about maps of the latent space: planes, classes, quality metrics, interpolation (book secs. 4.3, 4.5, 5.2)."""

from functools import partial

import torch

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.data import load_digits
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.autoencoders.dense_networks import dense_decoder, dense_encoder
from parnassus.latent.claims.training import adam
from parnassus.latent.latent_space.interpolation import (
    latent_traversal,
    linear_interpolation,
    spherical_interpolation,
)
from parnassus.latent.latent_space.latent_grid import latent_grid, latent_range, tile_images
from parnassus.latent.latent_space.quality_metrics import (
    anisotropy,
    centre_offset,
    find_holes,
    grid_coverage,
    neighbour_accuracy,
)
from parnassus.latent.linear.pca import PCA
from parnassus.probability import random_orthogonal, seeded_generator, standard_normal


@claim("B4.3-5")
def points_on_both_sides_of_a_plane_are_projected_on_it() -> Evidence:
    """Points at equal distances on both sides of a plane have this plane as their principal plane (book fig. 4.2)."""
    axes = random_orthogonal(3, generator=seeded_generator())
    in_the_plane = 2 + standard_normal(40, 2) @ torch.diag(torch.tensor([3.0, 1.0]).double()) @ axes[:, :2].mT
    heights = 0.3 * standard_normal(40, 1, seed=1).abs()
    x = torch.cat([in_the_plane + heights * axes[:, 2], in_the_plane - heights * axes[:, 2]])
    pca = PCA.fit(x, 2)
    residuals = x - pca.reconstruct(x)
    return all_of(
        normal=close(pca.components.mT @ axes[:, 2], 0.0, atol=1e-12),
        feet=close(pca.reconstruct(x), in_the_plane.repeat(2, 1), atol=1e-12),
        distances=close(residuals.norm(dim=1), heights.repeat(2, 1)[:, 0], atol=1e-12),
    )


@claim("B4.5-8", "B4.5-9")
def classes_are_clusters_of_the_latent_map() -> Evidence:
    """Two-dimensional codes of a network separate the digits better than PCA; its grid tiles images (book fig. 4.4)."""
    train = load_digits().train.take(600)
    assert train.y is not None
    torch.manual_seed(0)
    model = Autoencoder(dense_encoder((1, 8, 8), 2, width=128), dense_decoder(2, (1, 8, 8), width=128))
    adam(model, partial(model.loss, train.x), steps=100, lr=1e-2)
    flat = train.x.flatten(1)
    with torch.no_grad():
        codes = model.eval().encode(train.x)
        grid = latent_grid(*latent_range(codes), count=5)
        tiled = tile_images(model.decode(grid)[:, 0], columns=5)
        last = model.decode(grid[-1:])[0, 0]
    accuracy, linear = (neighbour_accuracy(z, train.y) for z in (codes, PCA.fit(flat, 2).transform(flat).float()))
    return all_of(
        codes=close(torch.tensor(codes.shape), torch.tensor([600, 2])),
        gain_in_accuracy=greater_equal(accuracy - linear, 0.1),
        grid=close(torch.tensor(tiled.shape), torch.tensor([40, 40])),
        last_tile=close(tiled[-8:, -8:], last, atol=1e-5),
    )


@claim("B4.5-10")
def quality_metrics_have_known_values_on_simple_codes() -> Evidence:
    """Offset, anisotropy, coverage, overlap of classes and holes of small sets of codes are exact (book ex. 4.2)."""
    cross = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]], dtype=torch.float64)
    rotation = random_orthogonal(2, generator=seeded_generator())
    shift = torch.tensor([4.0, -2.0], dtype=torch.float64)
    diagonal = torch.arange(20, dtype=torch.float64)[:, None].expand(-1, 2) * torch.tensor([1.0, 0.1])
    line = torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0], [12.5]], dtype=torch.float64)
    ring = torch.tensor([[-2.0, 0.0], [2.0, 0.0]], dtype=torch.float64).repeat(5, 1)
    deepest = find_holes(ring, pairs=50).deepest(1)
    return all_of(
        offset=close(centre_offset(cross @ rotation + shift), (20 / 5) ** 0.5, rtol=1e-12),
        centred=close(centre_offset(cross), 0.0, atol=1e-15),
        anisotropy=close(anisotropy(cross @ rotation + shift), 3.0, rtol=1e-12),
        coverage=close(grid_coverage(diagonal, cells=10), 10 / 100, atol=1e-7),
        separate_classes=close(neighbour_accuracy(line, torch.tensor([0, 0, 0, 1, 1, 1]), neighbours=2), 1.0),
        overlapping_classes=close(
            neighbour_accuracy(line, torch.tensor([0, 0, 0, 1, 1, 0]), neighbours=1), 5 / 6, atol=1e-6
        ),
        deepest_hole=close(deepest, 0.0, atol=1e-12),
        its_depth=close(find_holes(ring, pairs=50).depth.max(), 1.0, rtol=1e-12),
    )


@claim("B5.2-5")
def arcs_between_codes_stay_on_the_shell_of_the_prior() -> Evidence:
    """Midpoints of lines between N(0, I) codes have squared norm d / 2, those of arcs d (book sec. 5.2)."""
    starts, ends = standard_normal(200, 300), standard_normal(200, 300, seed=1)
    pairs = list(zip(starts, ends, strict=True))
    lines = torch.stack([linear_interpolation(start, end, count=5) for start, end in pairs])
    arcs = torch.stack([spherical_interpolation(start, end, count=5) for start, end in pairs])
    traversal = latent_traversal(starts[0], 7, limit=2.0, count=5)
    others = torch.arange(300) != 7
    fractions = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=torch.float64)
    return all_of(
        lines=close(lines.square().sum(2).mean(0) / 300, (1 - fractions).square() + fractions.square(), atol=0.03),
        arcs=close(arcs.square().sum(2).mean(0) / 300, 1.0, atol=0.03),
        ends=close(arcs[:, [0, -1]], torch.stack([starts, ends], 1), atol=1e-12),
        quarter=close(lines[:, 1], 0.75 * starts + 0.25 * ends, atol=1e-12),
        traversed=close(traversal[:, 7], torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])),
        other_coordinates=less_equal((traversal[:, others] - starts[0, others]).abs(), 0.0),
    )
