// Which commands there are that call the API like any client, and in which order help shows them.
import type { Chapter } from '../spec.ts';
import { activityCommand } from './activity.ts';
import { connectionCommands } from './connections.ts';
import { copyCommand } from './copy.ts';
import { execCommand, runCommand } from './exec.ts';
import { previewGroup } from './preview.ts';
import { sandboxGroup } from './sandbox.ts';
import { usageGroup } from './usage.ts';
import { whoamiCommand } from './whoami.ts';

export const clientChapters: readonly Chapter[] = [
  { heading: 'Sandboxes', entries: [sandboxGroup, execCommand, runCommand, copyCommand, ...connectionCommands, previewGroup] },
  { heading: 'Watching', entries: [usageGroup, activityCommand] },
  { heading: 'You', entries: [whoamiCommand] },
];
