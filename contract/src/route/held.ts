// Text of held responses in summaries.
import { HOLD_SECONDS } from './limits.ts';

/** Longest hold of a response. */
export const HELD = `at most ${HOLD_SECONDS.max} s with \`Prefer: wait=N\``;
