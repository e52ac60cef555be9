// Which commands there are that call the API like any client, and in which order help shows them.
import type { Chapter } from '../spec.ts';
import { completionCommand } from './completion.ts';
import { connectionCommands } from './connections.ts';
import { sandboxGroup } from './sandbox.ts';
import { whoamiCommand } from './whoami.ts';

export const clientChapters: readonly Chapter[] = [
  { heading: 'Sandboxes', entries: [sandboxGroup, ...connectionCommands] },
  { heading: 'You', entries: [whoamiCommand] },
  { heading: 'This program', entries: [completionCommand] },
];
