import '../shared/theme.css'
