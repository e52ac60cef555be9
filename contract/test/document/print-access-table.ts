// Prints docs/access.md (`npm run docs:access`).
import { accessTable } from '../../src/document/access-table.ts';

process.stdout.write(accessTable());
