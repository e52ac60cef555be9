import type { ComponentProps, ReactNode } from 'react';
import { Button } from '../button.tsx';
import { useCall } from './form.ts';
import { Alert } from '../states.tsx';

interface CallButtonProps<T> extends ComponentProps<typeof Button> {
  run: () => Promise<T>;
  /** Title of the failure. */
  failed: string;
  onDone?: ((result: T) => void) | undefined;
  /** In place of the content during the call. */
  pending?: ReactNode;
}

/** A button that makes a call, and shows its failure. */
export function CallButton<T>({ run, failed, onDone, pending, children, ...button }: CallButtonProps<T>) {
  const call = useCall();
  return (
    <>
      <Button {...button} busy={call.isPending} onClick={() => call.run(run, onDone)}>
        {call.isPending ? (pending ?? children) : children}
      </Button>
      <Alert title={failed} error={call.error} />
    </>
  );
}
