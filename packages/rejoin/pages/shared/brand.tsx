export function Brand({ children }: { children?: string }) {
  return (
    <p className="brand">
      <svg
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeWidth="2.6"
        strokeLinecap="round"
        aria-hidden="true"
      >
        <path d="M2.5 12H8M16 12h5.5" />
        <path d="M8 12a4 4 0 0 1 8 0" />
      </svg>
      Rejoin{children && <small>{children}</small>}
    </p>
  )
}
