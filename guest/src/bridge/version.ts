// Version of this bridge program. Tests build earlier versions from the same source.
import { BRIDGE_FEATURES, BRIDGE_VERSION } from '@berth/protocol/agent-errors.ts';

/** Defined by the bundler for another version than the current one. */
declare const BERTH_BRIDGE_VERSION: number | undefined;

export const bridgeVersion = typeof BERTH_BRIDGE_VERSION === 'number' ? BERTH_BRIDGE_VERSION : BRIDGE_VERSION;

export function bridgeHas(feature: keyof typeof BRIDGE_FEATURES): boolean {
  return bridgeVersion >= BRIDGE_FEATURES[feature];
}
