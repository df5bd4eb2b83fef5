// Added to what @jupyter/builder makes of package.json, so that the same sources give the same bytes:
// modules and chunks are numbered in the order in which they are met, and local names stay, because
// the minimizer's short ones are not the same each time.
const { SwcJsMinimizerRspackPlugin } = require('@rspack/core');

module.exports = {
  optimization: {
    moduleIds: 'natural',
    chunkIds: 'natural',
    minimizer: [new SwcJsMinimizerRspackPlugin({ minimizerOptions: { mangle: false } })]
  }
};
