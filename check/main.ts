// `npm run check:rules`: the rules of this tree that no linter knows. Prints each fault, and exits
// with 1 if there is any.
import { importCycles } from './rules/import-cycles.ts';
import { layerDirection } from './rules/layers.ts';
import { packageExports } from './rules/package-exports.ts';
import { fileLengths, folderSizes } from './rules/sizes.ts';
import { testTiers } from './rules/test-tiers.ts';
import { testTitles } from './rules/test-titles.ts';
import { unusedExports } from './rules/unused-exports.ts';
import { lineWidths } from './rules/widths.ts';
import { readTree } from './source/tree.ts';

const RULES = {
  layerDirection,
  packageExports,
  fileLengths,
  folderSizes,
  lineWidths,
  testTiers,
  testTitles,
  importCycles,
  unusedExports,
};

const wanted = process.argv.slice(2);
const files = readTree();
let faults = 0;
for (const [name, rule] of Object.entries(RULES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const found = rule(files);
  faults += found.length;
  for (const fault of found) console.error(fault);
  console.log(`${found.length === 0 ? '✓' : '✗'} ${name}: ${found.length === 0 ? 'kept' : `${found.length} faults`}`);
}
process.exitCode = faults === 0 ? 0 : 1;
