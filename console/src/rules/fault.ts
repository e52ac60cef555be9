// Failures that a form explains.
import type { BerthError } from '@berth/sdk';

/** The failure's sentence if the failure is about the field, such as `body.name`. */
export function faultOf(error: Error | null, field: string): string | undefined {
  const refused = error as BerthError | null;
  return refused?.field === field ? refused.message : undefined;
}

export const isCapReached = (error: Error | null): boolean =>
  (error as BerthError | null)?.code === 'machine_hour_limit';
