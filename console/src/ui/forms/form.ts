// State of a form and of the calls that it makes.
import { useEffect, useRef, useState } from 'react';
import { faultOf } from '../../rules/fault.ts';

export interface Call {
  isPending: boolean;
  /** Failure of the last run. */
  error: Error | null;
  /** @param onDone called with the result, unless the component is gone by then */
  run: <T>(work: () => Promise<T>, onDone?: (result: T) => void) => void;
  /** Forgets the failure. */
  reset: () => void;
}

const IDLE = { isPending: false, error: null };

export function useCall(): Call {
  const [state, setState] = useState<Pick<Call, 'isPending' | 'error'>>(IDLE);
  const isMounted = useRef(false);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  const run: Call['run'] = (work, onDone) => {
    setState({ isPending: true, error: null });
    work().then(
      (result) => {
        setState(IDLE);
        if (isMounted.current) onDone?.(result);
      },
      (error: Error) => setState({ isPending: false, error }),
    );
  };
  return { ...state, run, reset: () => setState(IDLE) };
}

/** Values of a form by name, and the call that sends them. */
export function useForm<Values extends object>(first: Values | (() => Values)) {
  const [values, setValues] = useState(first);
  const call = useCall();
  const set = (changes: Partial<Values>): void => setValues((current) => ({ ...current, ...changes }));
  /** Attributes of a field. @param sent path of its value in the request, such as `body.name` */
  const field = <Name extends keyof Values>(name: Name, sent?: string) => ({
    value: values[name],
    onChange: (value: Values[Name]): void => set({ [name]: value } as unknown as Partial<Values>),
    error: sent === undefined ? undefined : faultOf(call.error, sent),
  });
  return { ...call, values, set, field };
}
