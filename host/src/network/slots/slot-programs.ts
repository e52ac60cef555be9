// Programs that make and unmake slots in batches: shell files of programs/ with their arguments and
// environment. Runs nothing.
import { join } from 'node:path';
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { ROOT_TABLE, rootRules, slotRules } from './firewall.ts';
import type { Program } from './locked-program.ts';
import {
  GATEWAY_MAC,
  HOST_VETH_PREFIX,
  INNER_VETH_NAME,
  NAMESPACE_PREFIX,
  SLOT_PREFIX_LENGTH,
  TAP_NAME,
  TAP_PREFIX_LENGTH,
} from './slot.ts';
import type { Slot } from './slot.ts';

/** Bound of a guest's traffic in each direction. */
export const DEFAULT_RATE_MBIT = 2_000;

const NAMES = { NAMESPACE_PREFIX, HOST_VETH_PREFIX };

/** @param rateMbit of each slot and direction */
export function makeProgram(slots: readonly Slot[], rateMbit = DEFAULT_RATE_MBIT): Program {
  const words = slots.flatMap((slot) => [slot.number, slot.uid, slot.hostAddress, slot.address, slotRules(slot)]);
  return program('make-slots.sh', words, {
    ...NAMES,
    ...{ INNER_VETH_NAME, TAP_NAME, GATEWAY_MAC },
    ROOT_RULES: rootRules(),
    RATE_MBIT: String(rateMbit),
    SLOT_PREFIX_LENGTH: String(SLOT_PREFIX_LENGTH),
    TAP_PREFIX_LENGTH: String(TAP_PREFIX_LENGTH),
    GATEWAY_ADDRESS: GUEST_NETWORK.gateway,
    GUEST_ADDRESS: GUEST_NETWORK.address,
    GUEST_MAC: GUEST_NETWORK.mac,
  });
}

export const unmakeProgram = (numbers: readonly number[]): Program => program('unmake-slots.sh', numbers, NAMES);

export const removeRootRulesProgram = (registryFolder: string): Program =>
  program('remove-root-rules.sh', [registryFolder], { ROOT_TABLE });

function program(name: string, words: readonly (string | number)[], environment: Program['environment']): Program {
  return { command: ['sh', join(import.meta.dirname, 'programs', name), ...words.map(String)], environment };
}
