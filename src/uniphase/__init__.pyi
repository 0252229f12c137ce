from .fields import Field as Field, Grid as Grid, Points as Points
