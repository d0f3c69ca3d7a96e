//! Convolutional networks for images of 224 x 224 pixels with three colours and 1000 classes, layer
//! by layer.
//!
//! A k x k convolution from a to b channels has a b k^2 weights (and b biases). For an output of h
//! x h pixels, the convolution computes a b k^2 h^2 multiply-add pairs, 2 operations each. A
//! normalization of b channels has 2 b parameters. The gradients with respect to the inputs and to
//! the weights each need the same number of operations as the forward pass. The first layer needs
//! no gradient with respect to its inputs. Normalization, activation and pooling have no counted
//! operations, but take time ([`operators`]). The backward pass needs the output of every
//! convolution, normalization and matrix, 2 bytes per value; activations are applied in place.

use super::operators::{self, Among, Cut, Narrow, Part};
use super::{Division, Layer, LayerSplit, Tensor, Working};

/// Square image between two layers: number of channels, and side in pixels.
#[derive(Debug, Clone, Copy)]
struct Image {
    channels: u64,
    side: u64,
}

/// Window of a convolution or a pooling: kernel, stride and padding in pixels.
#[derive(Debug, Clone, Copy)]
struct Window {
    kernel: u64,
    stride: u64,
    padding: u64,
}

const fn window(kernel: u64, stride: u64, padding: u64) -> Window {
    Window {
        kernel,
        stride,
        padding,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterConvolution {
    /// A bias per channel.
    Bias,
    /// A normalization, which makes a bias superfluous.
    Normalization,
}

const INPUT: Image = Image {
    channels: 3,
    side: 224,
};
const CLASSES: u64 = 1000;

impl Image {
    fn pooled(self, form: Window) -> Image {
        let side = (self.side + 2 * form.padding - form.kernel) / form.stride + 1;
        Image { side, ..self }
    }

    /// Returns the image after a pooling whose windows may extend over the edge.
    fn pooled_over_the_edge(self, form: Window) -> Image {
        let side = (self.side + 2 * form.padding - form.kernel).div_ceil(form.stride) + 1;
        Image { side, ..self }
    }

    fn values(self) -> u64 {
        self.channels * self.side * self.side
    }
}

#[derive(Default)]
struct ImageLayers {
    layers: Vec<Layer>,
}

impl ImageLayers {
    fn push(&mut self, name: &str, tensors: &[(&str, u64)], products: u64, outputs: u64) {
        let forward = 2 * products;
        let first = self.layers.is_empty();
        let tensor = |(part, parameters): &(&str, u64)| Tensor {
            name: format!("{name}.{part}"),
            parameters: *parameters,
            division: Division::Whole,
        };
        self.layers.push(Layer {
            name: name.into(),
            tensors: tensors.iter().map(tensor).collect(),
            forward,
            backward: if first { forward } else { 2 * forward },
            activations: 2 * outputs,
            scores: 0,
            working: Working::default(),
            parts: Vec::new(),
            split: LayerSplit::default(),
        });
    }

    /// Adds a part to the computation of the last layer.
    fn part(&mut self, part: Part) {
        if let Some(layer) = self.layers.last_mut() {
            layer.parts.push(part);
        }
    }

    /// Adds kernels that pass over the values of an image to the last layer.
    fn passes(&mut self, name: &'static str, image: Image, passes: [u64; 2]) {
        self.part(operators::passes(
            name,
            image.values(),
            passes,
            Among::Tokens,
        ));
    }

    /// Adds an activation to the last layer.
    fn activation(&mut self, image: Image) {
        self.passes("activation", image, [2, 3]);
    }

    /// Adds a pooling of `image` to the last layer.
    fn pool(&mut self, image: Image, form: Window) -> Image {
        self.pooled(image.pooled(form), form)
    }

    /// Adds a pooling whose result is `image` to the last layer.
    fn pooled(&mut self, image: Image, form: Window) -> Image {
        let window = form.kernel * form.kernel;
        self.part(operators::pooling(image.values(), window));
        image
    }

    fn convolution(
        &mut self,
        name: &str,
        from: Image,
        channels: u64,
        form: Window,
        after: AfterConvolution,
    ) -> Image {
        let weights = from.channels * channels * form.kernel * form.kernel;
        let to = Image {
            channels,
            ..from.pooled(form)
        };
        let products = weights * to.side * to.side;
        let part = Part::Convolution {
            from: from.channels,
            to: channels,
            window: form.kernel * form.kernel,
            input: from.side * from.side,
            output: to.side * to.side,
            input_gradient: !self.layers.is_empty(),
        };
        match after {
            AfterConvolution::Bias => {
                let tensors = [("weight", weights), ("bias", channels)];
                self.push(name, &tensors, products, to.values());
                self.part(part);
                self.passes("bias", to, [2, 1]);
                self.activation(to);
            }
            AfterConvolution::Normalization => {
                self.push(name, &[("weight", weights)], products, to.values());
                self.part(part);
                let tensors = [("weight", channels), ("bias", channels)];
                self.push(&format!("{name}.norm"), &tensors, 0, to.values());
                self.part(operators::image_norm(to.values()));
            }
        }
        to
    }

    /// Appends a convolution with normalization and activation.
    fn active(&mut self, name: &str, from: Image, channels: u64, form: Window) -> Image {
        let to = self.convolution(name, from, channels, form, AfterConvolution::Normalization);
        self.activation(to);
        to
    }

    fn linear(&mut self, name: &str, from: u64, to: u64) -> u64 {
        self.push(name, &[("weight", from * to), ("bias", to)], from * to, to);
        self.part(Part::Conversion { weights: from * to });
        self.part(Part::Matrix {
            rows: 1,
            from,
            to,
            cut: Cut::Whole,
            matrices: 1,
            bias: false,
            narrow: Narrow::Never,
        });
        to
    }
}

/// Returns the layers of AlexNet with one column (Krizhevsky 2014, arXiv:1404.5997).
pub(super) fn alexnet() -> Vec<Layer> {
    let mut network = ImageLayers::default();
    let pool = window(3, 2, 0);
    let image = network.convolution("conv1", INPUT, 64, window(11, 4, 2), AfterConvolution::Bias);
    let image = network.pool(image, pool);
    let image = network.convolution("conv2", image, 192, window(5, 1, 2), AfterConvolution::Bias);
    let mut image = image.pooled(pool);
    for (name, channels) in [("conv3", 384), ("conv4", 256), ("conv5", 256)] {
        image = network.convolution(
            name,
            image,
            channels,
            window(3, 1, 1),
            AfterConvolution::Bias,
        );
    }
    let image = network.pool(image, pool);
    let values = network.linear("fc6", image.values(), 4096);
    let values = network.linear("fc7", values, 4096);
    network.linear("fc8", values, CLASSES);
    network.layers
}

/// Returns the layers of VGG. `blocks` contains the number of 3 x 3 convolutions in each of the
/// five blocks (Simonyan and Zisserman 2015, table 1).
pub(super) fn vgg(blocks: [u64; 5]) -> Vec<Layer> {
    let mut network = ImageLayers::default();
    let mut image = INPUT;
    for (block, (count, channels)) in blocks.into_iter().zip([64, 128, 256, 512, 512]).enumerate() {
        for layer in 0..count {
            let name = format!("conv{}_{}", block + 1, layer + 1);
            image = network.convolution(
                &name,
                image,
                channels,
                window(3, 1, 1),
                AfterConvolution::Bias,
            );
        }
        image = network.pool(image, window(2, 2, 0));
    }
    let values = network.linear("fc6", image.values(), 4096);
    let values = network.linear("fc7", values, 4096);
    network.linear("fc8", values, CLASSES);
    network.layers
}

/// Returns the layers of ResNet with bottleneck blocks (He et al. 2016, table 1). The 3 x 3
/// convolution of a block has the stride of the block. `stages` contains the number of blocks in
/// each stage.
pub(super) fn resnet(stages: [u64; 4]) -> Vec<Layer> {
    let mut network = ImageLayers::default();
    let normalized = AfterConvolution::Normalization;
    let image = network.convolution("conv1", INPUT, 64, window(7, 2, 3), normalized);
    network.activation(image);
    let mut image = network.pool(image, window(3, 2, 1));
    for (stage, (count, channels)) in stages.into_iter().zip([64, 128, 256, 512]).enumerate() {
        for block in 0..count {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let name = format!("conv{}_{}", stage + 2, block + 1);
            let part = |part: &str| format!("{name}.{part}");
            let inner =
                network.convolution(&part("a"), image, channels, window(1, 1, 0), normalized);
            network.activation(inner);
            let inner = network.convolution(
                &part("b"),
                inner,
                channels,
                window(3, stride, 1),
                normalized,
            );
            network.activation(inner);
            let outer =
                network.convolution(&part("c"), inner, 4 * channels, window(1, 1, 0), normalized);
            network.passes("residual", outer, [3, 3]);
            network.activation(outer);
            if block == 0 {
                let form = window(1, stride, 0);
                network.convolution(&part("skip"), image, 4 * channels, form, normalized);
            }
            image = outer;
        }
    }
    network.linear("fc", image.channels, CLASSES);
    network.layers
}

/// Numbers of output channels in an inception module: of 1x1; of the reduction before 3x3, of 3x3;
/// of the reduction before 5x5, of 5x5; of the projection after the pooling.
type Inception = [u64; 6];

/// Modules of GoogLeNet in order, as (name, numbers of channels); `None` stands for a pooling
/// (Szegedy et al. 2015, table 1).
const INCEPTIONS: [(&str, Option<Inception>); 11] = [
    ("3a", Some([64, 96, 128, 16, 32, 32])),
    ("3b", Some([128, 128, 192, 32, 96, 64])),
    ("pool3", None),
    ("4a", Some([192, 96, 208, 16, 48, 64])),
    ("4b", Some([160, 112, 224, 24, 64, 64])),
    ("4c", Some([128, 128, 256, 24, 64, 64])),
    ("4d", Some([112, 144, 288, 32, 64, 64])),
    ("4e", Some([256, 160, 320, 32, 128, 128])),
    ("pool4", None),
    ("5a", Some([256, 160, 320, 32, 128, 128])),
    ("5b", Some([384, 192, 384, 48, 128, 128])),
];

/// Returns the layers of GoogLeNet as in torchvision: without auxiliary classifiers, with
/// normalization, and with 3 x 3 instead of 5 x 5 convolutions.
pub(super) fn googlenet() -> Vec<Layer> {
    let mut network = ImageLayers::default();
    let (pointwise, square) = (window(1, 1, 0), window(3, 1, 1));
    let pool = window(3, 2, 0);
    let image = network.active("conv1", INPUT, 64, window(7, 2, 3));
    let image = network.pooled(image.pooled_over_the_edge(pool), pool);
    let image = network.active("conv2", image, 64, pointwise);
    let image = network.active("conv3", image, 192, square);
    let mut image = network.pooled(image.pooled_over_the_edge(pool), pool);
    for (module, channels) in INCEPTIONS {
        let Some([direct, narrow3, wide3, narrow5, wide5, pooled]) = channels else {
            let kernel = if module == "pool4" { 2 } else { 3 };
            let pool = window(kernel, 2, 0);
            image = network.pooled(image.pooled_over_the_edge(pool), pool);
            continue;
        };
        let name = |part: &str| format!("inception{module}.{part}");
        network.active(&name("1x1"), image, direct, pointwise);
        let inner = network.active(&name("3x3_reduce"), image, narrow3, pointwise);
        network.active(&name("3x3"), inner, wide3, square);
        let inner = network.active(&name("5x5_reduce"), image, narrow5, pointwise);
        network.active(&name("5x5"), inner, wide5, square);
        network.pool(image, square);
        network.active(&name("pool"), image, pooled, pointwise);
        image.channels = direct + wide3 + wide5 + pooled;
        network.passes("concatenation", image, [2, 2]);
    }
    network.linear("fc", image.channels, CLASSES);
    network.layers
}
