// Commands that call the API, in the order of the help.
import type { Chapter } from './program/command-spec.ts';
import { activityCommand } from './activity/spec.ts';
import { agentGroup } from './agents/spec.ts';
import { apiCommand } from './api/spec.ts';
import { completionCommand } from './completion/spec.ts';
import { connectionCommands } from './connections/spec.ts';
import { openCommand } from './console/spec.ts';
import { copyCommand, filesGroup } from './files/spec.ts';
import { execCommand, runCommand } from './sandboxes/exec-spec.ts';
import { serviceGroup } from './hosts/spec.ts';
import { keyGroup, tokenGroup } from './access/spec.ts';
import { orgGroup } from './orgs/org-spec.ts';
import { previewGroup } from './previews/spec.ts';
import { processCommands } from './processes/spec.ts';
import { projectGroup } from './orgs/project-spec.ts';
import { sandboxGroup } from './sandboxes/spec.ts';
import { loginCommand, logoutCommand, profileGroup, signInGroup } from './people/sign-in-spec.ts';
import { usageGroup } from './usage/spec.ts';
import { whoamiCommand } from './people/whoami-spec.ts';

export const clientChapters: readonly Chapter[] = [
  {
    heading: 'Sandboxes',
    entries: [
      sandboxGroup,
      execCommand,
      runCommand,
      ...processCommands,
      copyCommand,
      filesGroup,
      ...connectionCommands,
      previewGroup,
    ],
  },
  { heading: 'Coding agents', entries: [agentGroup] },
  {
    heading: 'Orgs and projects',
    entries: [orgGroup, projectGroup, keyGroup, tokenGroup, usageGroup, activityCommand],
  },
  { heading: 'API', entries: [apiCommand] },
  { heading: 'Installation', entries: [serviceGroup] },
  { heading: 'Web console', entries: [openCommand] },
  { heading: 'Account', entries: [loginCommand, logoutCommand, whoamiCommand, signInGroup, profileGroup] },
  { heading: 'Shell', entries: [completionCommand] },
];
