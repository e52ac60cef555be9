// Environment of the image build. The only file of this workspace that reads it.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { agentSelection, ALLOWED_SELECTIONS, type AgentId } from './build/agent-selection.ts';

/** `BERTH_CACHE_DIR`, else the system's cache folder for root, the user's for others. */
export function defaultCacheFolder(env: NodeJS.ProcessEnv): string {
  const given = env['BERTH_CACHE_DIR'];
  if (given !== undefined && given !== '') return resolve(given);
  if (process.getuid?.() === 0) return '/var/cache/berth';
  return join(env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'berth');
}

/** Coding agents that `BERTH_AGENTS` selects; undefined without it. */
export function selectedAgents(env: NodeJS.ProcessEnv): AgentId[] | undefined {
  const given = env['BERTH_AGENTS'];
  if (given === undefined || given === '') return undefined;
  const parsed = agentSelection.safeParse(given);
  if (!parsed.success) throw new Error(`BERTH_AGENTS: '${given}' is not ${ALLOWED_SELECTIONS}`);
  return parsed.data;
}
