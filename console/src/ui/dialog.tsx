// A modal dialog: the browser's own, which makes the rest of the page inert and returns the focus.
import { useId, useLayoutEffect, useRef, type ComponentProps, type ReactNode } from 'react';
import css from './dialog.module.css';

interface ModalProps extends ComponentProps<'dialog'> {
  children: ReactNode;
  /** Called when the person leaves the dialog; the parent then unmounts it. */
  onClose: () => void;
  /** Needs a decision: a press outside does not close it. */
  alert?: boolean;
}

/** A modal dialog with any content in one element, and a name given by attributes. */
export function Modal({ children, onClose, alert = false, className = '', ...attributes }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const opened = dialog.current;
    opened?.showModal();
    return () => opened?.close();
  }, []);
  return (
    <dialog
      {...attributes}
      ref={dialog}
      className={`${css.dialog} ${className}`}
      role={alert ? 'alertdialog' : undefined}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      // The backdrop belongs to the dialog; its content is in the element inside.
      onPointerDown={(event) => (event.target === dialog.current && !alert ? onClose() : undefined)}
    >
      {children}
    </dialog>
  );
}

interface DialogProps extends Pick<ModalProps, 'children' | 'onClose' | 'alert'> {
  title: string;
  description: string;
}

export function Dialog({ title, description, children, ...modal }: DialogProps) {
  const id = useId();
  return (
    <Modal {...modal} aria-labelledby={`${id}-title`} aria-describedby={`${id}-description`}>
      <div className={css.content}>
        <h2 id={`${id}-title`}>{title}</h2>
        <p id={`${id}-description`} className={css.description}>
          {description}
        </p>
        {children}
      </div>
    </Modal>
  );
}
