// Prints docs/access.md: `npm run docs:access` writes it.
import { accessTable } from '../src/access-table.ts';

process.stdout.write(accessTable());
