// Which commands there are that call the API like any client, and in which order help shows them.
import type { Chapter } from '../spec.ts';
import { connectionCommands } from './connections.ts';
import { execCommand } from './exec.ts';
import { sandboxGroup } from './sandbox.ts';
import { whoamiCommand } from './whoami.ts';

export const clientChapters: readonly Chapter[] = [
  { heading: 'Sandboxes', entries: [sandboxGroup, execCommand, ...connectionCommands] },
  { heading: 'You', entries: [whoamiCommand] },
];
