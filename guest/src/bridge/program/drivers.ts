// Drivers of the bridge, by agent.
import { startClaude } from '../claude/driver.ts';
import { startCodex } from '../codex/driver.ts';
import type { StartDriver } from '../driver.ts';

export const DRIVERS: Readonly<Record<string, StartDriver>> = { agent_one: startCodex, agent_two: startClaude };
