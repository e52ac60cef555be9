// Ids of the coding agents that an image can have, and the setting that selects some of them.
import { z } from 'zod';

export const AGENT_IDS = ['agent_one', 'agent_two'] as const;
export type AgentId = (typeof AGENT_IDS)[number];

/** Ids separated by commas, or `none`; in the order of AGENT_IDS, each once. */
export const agentSelection = z
  .string()
  .transform((text) => (text === 'none' ? [] : text.split(',').map((id) => id.trim())))
  .pipe(z.array(z.enum(AGENT_IDS)))
  .transform((ids) => AGENT_IDS.filter((id) => ids.includes(id)));

export const ALLOWED_SELECTIONS = `'none', or a list of ${AGENT_IDS.join(' and ')} separated by commas`;
