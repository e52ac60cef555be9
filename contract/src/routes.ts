// Every route of the public API. The server serves exactly these; a test proves it.
import { execInSandbox } from './exec.ts';
import { getHealth } from './health.ts';
import { getMe, listMyOrgs } from './identity.ts';
import { createProject, listProjects } from './projects.ts';
import { getLiveMetrics, sampleMetrics } from './metrics.ts';
import type { Route } from './route.ts';
import { renewSandbox, resizeSandbox, resumeSandbox, sleepSandbox, stopSandbox, wakeSandbox } from './sandbox-lifecycle.ts';
import { createSandbox, destroySandbox, getSandbox, listSandboxes } from './sandboxes.ts';

export const ROUTES: readonly Route[] = [
  getHealth,
  getMe,
  listMyOrgs,
  listProjects,
  createProject,
  listSandboxes,
  createSandbox,
  getSandbox,
  execInSandbox,
  sleepSandbox,
  stopSandbox,
  wakeSandbox,
  resumeSandbox,
  resizeSandbox,
  renewSandbox,
  getLiveMetrics,
  sampleMetrics,
  destroySandbox,
];
