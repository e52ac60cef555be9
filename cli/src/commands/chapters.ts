// Which commands there are that call the API like any client, and in which order help shows them.
import type { Chapter } from '../spec.ts';
import { activityCommand } from './activity.ts';
import { completionCommand } from './completion.ts';
import { connectionCommands } from './connections.ts';
import { copyCommand } from './copy.ts';
import { execCommand, runCommand } from './exec.ts';
import { keyGroup, tokenGroup } from './key.ts';
import { orgGroup } from './org.ts';
import { previewGroup } from './preview.ts';
import { projectGroup } from './project.ts';
import { sandboxGroup } from './sandbox.ts';
import { loginCommand, logoutCommand, profileGroup } from './sign-in.ts';
import { usageGroup } from './usage.ts';
import { whoamiCommand } from './whoami.ts';

export const clientChapters: readonly Chapter[] = [
  {
    heading: 'Sandboxes',
    entries: [sandboxGroup, execCommand, runCommand, copyCommand, ...connectionCommands, previewGroup],
  },
  {
    heading: 'Orgs and projects',
    entries: [orgGroup, projectGroup, keyGroup, tokenGroup, usageGroup, activityCommand],
  },
  { heading: 'You', entries: [loginCommand, logoutCommand, whoamiCommand, profileGroup] },
  { heading: 'This program', entries: [completionCommand] },
];
